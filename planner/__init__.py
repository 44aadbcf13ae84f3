"""Workloads, model facts, memory, speed, cost and ranking. Reads the catalog through its queries; never fetches."""
