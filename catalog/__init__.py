"""What an offer is and where it is stored: types, units, GPU names, facts, validation, store, views and queries."""
