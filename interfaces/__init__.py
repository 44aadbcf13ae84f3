"""How people and programs reach gpubazaar: the command line and its rendering."""
