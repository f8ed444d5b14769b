"""Small tools that every room may use: files written whole or not at all, progress, lazy imports, robust spread."""
