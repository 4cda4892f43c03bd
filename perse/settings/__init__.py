"""Settings of the programs, typed, and the recipes that are packaged for them (configs/)."""
