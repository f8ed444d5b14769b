"""The paper's figures and its table, from the public face of the package."""
