"""Training of adapters."""

import json
import os
import tempfile
import unittest

import kernelforge


class TrainingTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.data = self.path("fox.jsonl")
        with open(self.data, "w") as file:
            for name in ("Kip", "Tam", "Bo", "Una"):
                text = f"The fox was called {name}."
                file.write(json.dumps({"text": text}) + "\n")

    def path(self, name):
        return os.path.join(self.folder, name)

    def train(self, output, **options):
        return kernelforge.train(
            data=self.data,
            output=self.path(output),
            lora=2,
            lora_targets=["q_proj", "v_proj"],
            steps=4,
            batch=1,
            length=16,
            learning_rate=5e-3,
            **options,
        )

    def adapter(self, output):
        with open(self.path(f"{output}/adapter_model.safetensors"), "rb") as file:
            return file.read()

    def test_trains_and_goes_on_to_the_same_bits(self):
        steps = []
        result = self.train(
            "whole", on_step=steps.append, eval_split=0.25, lora_dropout=0.1
        )
        self.assertEqual([step.step for step in steps], [1, 2, 3, 4])
        self.assertLess(steps[3].loss, steps[0].loss)
        self.assertEqual(result.steps, 4)
        self.assertGreater(result.eval_loss, 0)

        class Stop(Exception):
            pass

        def stop(step):
            if step.step == 2:
                raise Stop

        with self.assertRaises(Stop):
            self.train("parts", on_step=stop, eval_split=0.25, lora_dropout=0.1)
        with self.assertRaisesRegex(kernelforge.InvalidError, "has checkpoints"):
            self.train("parts", eval_split=0.25, lora_dropout=0.1)
        steps.clear()
        self.train(
            "parts",
            on_step=steps.append,
            eval_split=0.25,
            lora_dropout=0.1,
            resume=True,
        )
        self.assertEqual([step.step for step in steps], [3, 4])
        self.assertEqual(self.adapter("parts"), self.adapter("whole"))

    def test_all_weights_are_a_model_of_their_own(self):
        kernelforge.train(
            kernelforge.EMBEDDED,
            data=self.data,
            output=self.path("full"),
            full=True,
            steps=1,
            batch=1,
            length=16,
            beta2=0.99,
            pack=False,
            shuffle=False,
            chat_template_kwargs={"enable_thinking": False},
        )
        with kernelforge.load(self.path("full")) as model:
            self.assertTrue(model.generate("The fox", max_tokens=4))

    def test_errors(self):
        with self.assertRaisesRegex(kernelforge.InvalidError, "give lora RANK"):
            kernelforge.train(data=self.data, output=self.path("out"))
        with self.assertRaisesRegex(kernelforge.InvalidError, "exclude each other"):
            self.train("out", full=True)
        with self.assertRaisesRegex(kernelforge.InvalidError, "^beta1 is 1; a number"):
            self.train("out", beta1=1)
        with self.assertRaisesRegex(
            kernelforge.InvalidError, "^lora_dropout is 1; a number"
        ):
            self.train("out", lora_dropout=1)
        os.makedirs(self.path("taken"))
        with open(self.path("taken/adapter_config.json"), "w") as file:
            file.write("{}")
        with self.assertRaisesRegex(kernelforge.InvalidError, "give force, or"):
            self.train("taken")
        with self.assertRaisesRegex(kernelforge.InvalidError, "momentum is for opt"):
            self.train("out", momentum=0.5)
        with self.assertRaisesRegex(
            kernelforge.InvalidError, "^min_learning_rate is more than learning_rate"
        ):
            self.train("out", min_learning_rate=1)
        with self.assertRaisesRegex(kernelforge.InvalidError, "recompute.*'all'"):
            self.train("out", recompute="all")
        with self.assertRaisesRegex(kernelforge.InvalidError, "longer than 16 tokens"):
            self.data = self.path("long.jsonl")
            with open(self.data, "w") as file:
                file.write(json.dumps({"text": "fox " * 99}))
            self.train("out", long="drop")
        with self.assertRaisesRegex(kernelforge.Error, "cannot open.*none.jinja"):
            self.train("out", chat_template=self.path("none.jinja"))
        with self.assertRaisesRegex(TypeError, "'chat_template_kwargs' is of type"):
            self.train("out", chat_template_kwargs=[])
        self.data = self.path("fox.jsonl")
        with self.assertRaisesRegex(kernelforge.InvalidError, "'clip' is -1"):
            self.train("out", clip=-1)
        with self.assertRaisesRegex(kernelforge.NotFoundError, "no checkpoint"):
            self.train("out", resume=True)
        self.data = self.path("none.jsonl")
        with self.assertRaisesRegex(kernelforge.Error, "cannot open"):
            self.train("out")


if __name__ == "__main__":
    unittest.main()
