"""The experiments that come with epicast: a TOML file says what is run, a module of the same name what is looked at."""
