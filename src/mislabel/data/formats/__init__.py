"""File formats: one module each, its reader and its writer side by side."""
