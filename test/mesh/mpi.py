"""How the tests start Open MPI."""
import atexit
import functools
import shutil
import tempfile


@functools.cache
def _folder():
    """Each test has its own folder for mpirun's files: several that run at once would make and remove the same one."""
    folder = tempfile.mkdtemp(prefix="k31-mpi-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def mpirun(ranks):
    """The begin of a command line."""
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "--quiet", "--mca", "orte_tmpdir_base", _folder(), "-n", str(ranks)]
