# The overlay: FoundationDB's own configure step includes this file when it is told to by
#   -DCMAKE_PROJECT_foundationdb_INCLUDE=<this file>
# and its fdbserver is built with the temporal tree beside the original skip list. No file of FoundationDB is changed.
# README.md has the releases, OPERATORS.md what to do with the server.

if(CMAKE_VERSION VERSION_LESS 3.24)
  message(FATAL_ERROR "resolver overlay: CMake ${CMAKE_VERSION} is too old, 3.24 is needed")
endif()
cmake_policy(PUSH)
cmake_policy(VERSION 3.24)

set(RESOLVER_CARGO_PROFILE "" CACHE STRING "Profile of the resolver's Rust library; empty: dev for a Debug build, else release")
find_program(RESOLVER_CARGO cargo HINTS ENV CARGO_HOME PATH_SUFFIXES bin DOC "cargo, for the resolver's Rust library")

# Where the resolver's repository is.
get_filename_component(RESOLVER_ROOT "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)

# The layouts that are known. Of each: the target that holds the conflict set, its source, and the header that declares it. The
# first whose target has the source is taken; what is none of them stops the configure step.
set(RESOLVER_LAYOUTS
  "fdbserver_resolver|ConflictSet.cpp|fdbserver/resolver/ConflictSet.h"
  "fdbserver|SkipList.cpp|fdbserver/include/fdbserver/ConflictSet.h")
set(RESOLVER_RELEASES "7.3, 7.4 and main (8.0)")

# Finds the layout: sets `resolver_target` and `resolver_source` for the caller.
function(resolver_find_layout)
  foreach(layout IN LISTS RESOLVER_LAYOUTS)
    string(REPLACE "|" ";" layout "${layout}")
    list(GET layout 0 target)
    list(GET layout 1 name)
    list(GET layout 2 header)
    if(NOT TARGET ${target})
      continue()
    endif()
    get_target_property(sources ${target} SOURCES)
    get_target_property(folder ${target} SOURCE_DIR)
    foreach(source IN LISTS sources)
      get_filename_component(file "${source}" NAME)
      if(NOT file STREQUAL name OR NOT EXISTS "${PROJECT_SOURCE_DIR}/${header}")
        continue()
      endif()
      # What the adapter uses of the header, and not every release has.
      file(STRINGS "${PROJECT_SOURCE_DIR}/${header}" bugs REGEX "shared_ptr<ResolverBug> bugs")
      file(STRINGS "${PROJECT_SOURCE_DIR}/${header}" reports REGEX "VectorRef<int>>\\* conflictingKeyRangeMap;")
      if(bugs AND reports)
        get_filename_component(source "${source}" ABSOLUTE BASE_DIR "${folder}")
        set(resolver_target ${target} PARENT_SCOPE)
        set(resolver_source "${source}" PARENT_SCOPE)
        return()
      endif()
    endforeach()
  endforeach()
  message(FATAL_ERROR "resolver overlay: FoundationDB ${PROJECT_VERSION} has a layout that is not known; supported are ${RESOLVER_RELEASES}")
endfunction()

# Builds the Rust library: target `resolver_bridge`. Its generated C++ goes into `folder`.
function(resolver_add_library folder)
  if(NOT RESOLVER_CARGO)
    message(FATAL_ERROR "resolver overlay: cargo is not found; install Rust, or set RESOLVER_CARGO to its path")
  endif()
  set(profile "${RESOLVER_CARGO_PROFILE}")
  if(NOT profile)
    set(profile release)
    if(CMAKE_BUILD_TYPE STREQUAL "Debug")
      set(profile dev)
    endif()
  endif()
  # Cargo puts the profile `dev` into a folder of another name.
  string(REGEX REPLACE "^(dev|test)$" "debug" subfolder "${profile}")
  set(archive "${folder}/target/${subfolder}/libresolver_bridge.a")
  # The one C++ file that comes with the bridge's library is compiled by cargo, with this build's compiler and standard library.
  set(flags "")
  if(USE_LIBCXX)
    set(flags "-stdlib=libc++")
  endif()
  add_custom_target(resolver_rust
    COMMAND ${CMAKE_COMMAND} -E env
            "CXX=${CMAKE_CXX_COMPILER}" "CXXFLAGS=${flags}" "RESOLVER_BRIDGE_COPY=${folder}/generated"
            "${RESOLVER_CARGO}" build --locked --package resolver-bridge --lib --profile ${profile} --target-dir "${folder}/target"
    WORKING_DIRECTORY "${RESOLVER_ROOT}"
    BYPRODUCTS "${archive}" "${folder}/generated/bridge.rs.h" "${folder}/generated/bridge.rs.cc"
    COMMENT "Building the resolver's Rust library (${profile})"
    VERBATIM)
  find_package(Threads REQUIRED)
  add_library(resolver_bridge STATIC IMPORTED GLOBAL)
  set_target_properties(resolver_bridge PROPERTIES
    IMPORTED_LOCATION "${archive}"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
  add_dependencies(resolver_bridge resolver_rust)
endfunction()

# Runs when all of FoundationDB's targets are there.
function(resolver_overlay)
  resolver_find_layout()
  # A changed list of names configures again.
  set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${RESOLVER_ROOT}/cpp-bridge/cpp/original_names.txt")
  set(folder "${PROJECT_BINARY_DIR}/resolver")
  set(cpp "${RESOLVER_ROOT}/cpp-bridge/cpp")
  resolver_add_library("${folder}")

  # The original, unchanged, under other names; and the one source of ours that sees it under them.
  file(STRINGS "${cpp}/original_names.txt" names)
  set_property(SOURCE "${resolver_source}" "${cpp}/original.cpp" TARGET_DIRECTORY ${resolver_target}
    APPEND PROPERTY COMPILE_DEFINITIONS ${names})

  set(ours
    "${cpp}/adapter.cpp" "${cpp}/settings.cpp" "${cpp}/skiplist_test.cpp" "${cpp}/original.cpp"
    "${folder}/generated/bridge.rs.cc")
  set_property(SOURCE "${folder}/generated/bridge.rs.cc" TARGET_DIRECTORY ${resolver_target} PROPERTY GENERATED TRUE)
  set_property(SOURCE ${ours} TARGET_DIRECTORY ${resolver_target} APPEND PROPERTY INCLUDE_DIRECTORIES "${folder}/generated")
  target_sources(${resolver_target} PRIVATE ${ours})
  add_dependencies(${resolver_target} resolver_rust)
  target_link_libraries(${resolver_target} PRIVATE resolver_bridge)

  file(RELATIVE_PATH shown "${PROJECT_SOURCE_DIR}" "${resolver_source}")
  message(STATUS "resolver overlay: FoundationDB ${PROJECT_VERSION}, ${shown} is kept under other names in ${resolver_target}")
endfunction()

cmake_language(DEFER DIRECTORY "${PROJECT_SOURCE_DIR}" CALL resolver_overlay)
cmake_policy(POP)
