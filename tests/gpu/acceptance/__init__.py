"""The acceptance on a GPU: ../run.sh runs its parts."""
