"""Writes the models of trees beside it, and documents.txt: values of documents, and the raw score of each by every model.
Needs lightgbm and xgboost: python3 make_trees.py"""

import pathlib

import lightgbm
import numpy
import xgboost

HERE = pathlib.Path(__file__).parent
draws = numpy.random.default_rng(3)
values = draws.normal(size=(240, 4)).round(2).astype(numpy.float32)
values[draws.random(values.shape) < 0.2] = 0.0
grades = numpy.clip(numpy.floor(values[:, 0] + values[:, 1] * values[:, 2] + 1), 0, 3)
grades += (values[:, 3] == 0).astype(int)
with_gaps = numpy.where(draws.random(values.shape) < 0.15, numpy.nan, values).astype(numpy.float32)
groups = [20] * 12
shown = numpy.vstack([values[:12], with_gaps[12:24]])
scores = []


def light(name, docs, **settings):
    settings = {"verbose": -1, "num_threads": 1, "num_leaves": 6, "min_data_in_leaf": 8, "seed": 1, **settings}
    model = lightgbm.train(settings, lightgbm.Dataset(docs, grades, group=groups), 3)
    text = model.model_to_string(importance_type="gain").split("\nfeature_importances")[0]
    (HERE / name).write_text(text + "\n")
    scores.append(model.predict(shown, raw_score=True))


def boosted(name, docs, labels, **settings):
    data = xgboost.DMatrix(docs, labels, feature_names=["bm25", "clicks", "age", "price"])
    if settings["objective"].startswith("rank"):
        data.set_group(groups)
    model = xgboost.train({"max_depth": 3, "nthread": 1, "seed": 1, **settings}, data, 3)
    model.save_model(HERE / name)
    scores.append(model.predict(xgboost.DMatrix(shown, feature_names=data.feature_names), output_margin=True))


light("lightgbm-plain.txt", values, objective="lambdarank")
light("lightgbm-zeros.txt", values, objective="lambdarank", zero_as_missing=True)
light("lightgbm-forest.txt", with_gaps, objective="regression", boosting="rf", bagging_freq=1, bagging_fraction=0.6)
boosted("xgboost-trees.json", with_gaps, grades, objective="rank:ndcg")
boosted("xgboost-dart.json", values, (grades > 1).astype(int), objective="binary:logistic", booster="dart", rate_drop=0.5,
        base_score=0.3)
lines = [" ".join(f"{v:g}" for v in doc) + " | " + " ".join(f"{s[row]:.9g}" for s in scores) for row, doc in enumerate(shown)]
(HERE / "documents.txt").write_text("\n".join(lines) + "\n")
