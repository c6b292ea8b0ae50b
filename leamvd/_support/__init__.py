"""What every wing needs: compiling, checking arguments, threads."""
