# The Visual Transformer that trains best of those tried (docs/training.md): the equations with normalised steps.
# Adam's steps have the same size in every entry, which adds up in matrices as wide as the tokens; here an optimizer
# moves the token-side matrices 0.3 times as far. The same parameters and multiply-adds as without.
normalised = dict(step=0.3)
