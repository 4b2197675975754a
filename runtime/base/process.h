// What a program settles first about its process, whoever started it and how.
#pragma once

namespace k31 {

// Standard input, output and errors that are closed become /dev/null opened for reading: else the next file, socket or device
// that is opened takes their numbers, and what is printed goes there. Writes to them still fail. A write past the limit of file
// sizes (ulimit -f) becomes an error (EFBIG), where it would end the process with its files half written.
void settle_process();

} // namespace k31
