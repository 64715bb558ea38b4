#!/usr/bin/env bash
# Compiles a crate of the workspace and lints it in the same pass, as cargo's RUSTC_WORKSPACE_WRAPPER: warnings are errors.
# `cargo clippy` would check every dependency once more beside the build of the tests, which is minutes of a cold run.
#   scripts/lint-rustc.sh RUSTC [ARGUMENT…]
# Not by CLIPPY_ARGS: cargo would find that variable changed, and compile everything again each time.
exec clippy-driver "$@" -D warnings
