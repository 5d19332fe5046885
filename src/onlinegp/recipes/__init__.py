"""The parts of a recipe (dictionaries, beliefs, forgetting, pruning), and the update that all recipes share."""
