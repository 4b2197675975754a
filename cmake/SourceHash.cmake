# cmake -DROOT=... -DFILES="a;b" -DSALT=... -DOUTPUT=... -P SourceHash.cmake: a header with 16 hex digits over the files' names and
# bytes, relative to ROOT, and over SALT. Written only when it changes.
set(all "${SALT}")
foreach(file IN LISTS FILES)
  file(SHA256 ${ROOT}/${file} hash)
  string(APPEND all "${file} ${hash}\n")
endforeach()
string(SHA256 all "${all}")
string(SUBSTRING ${all} 0 16 all)
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define K31_SOURCE_HASH \"${all}\"\n")
