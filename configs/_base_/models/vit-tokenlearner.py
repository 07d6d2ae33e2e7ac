# TokenLearner (Ryoo et al., NeurIPS 2021) in a ViT-small: eight tokens of the map after the sixth of twelve blocks.
# TokenFuser, with which each later block works on eight tokens of a whole grid: projects/survey_claims.
architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        drop_path_rate=0.1,
        stages=[
            dict(
                channels=384,
                num_heads=6,
                depth=6,
                embed=dict(type='vt.PatchEmbed', kernel_size=16),
                position=dict(type='vt.AbsolutePosition'),
            ),
            dict(
                channels=384,
                num_heads=6,
                depth=6,
                embed=dict(type='vt.TokenizerEmbed', tokenizer=dict(type='vt.TokenLearner', num_tokens=8)),
                norm=True,
            ),
        ],
    ),
)
