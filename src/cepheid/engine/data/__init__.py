"""Events as engines see them: in order, by partition, as columns; and matches as row numbers."""
