"""Files of events: which ones a path stands for, what lies in the names of their directories, and their tables."""
