# A backbone with one feature vector per image, and a linear classifier of ten classes.
model = dict(
    type='ImageClassifier',
    head=dict(
        type='LinearClsHead',
        num_classes=10,
        loss=dict(type='CrossEntropyLoss', loss_weight=1.0),
        topk=(1,),
    ),
)
