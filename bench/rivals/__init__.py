"""Other engines on the same streams and queries. Each lives under build/rivals; none is a dependency of the package."""
