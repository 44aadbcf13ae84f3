"""One provider, one file: turns recorded or fetched documents into catalog rows."""
