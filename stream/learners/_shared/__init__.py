"""What several methods have in common; a method's own file is one folder up."""
