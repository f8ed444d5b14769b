"""What a label says: the scale on which right labels spread evenly, and densities of a label given what all others predict."""
