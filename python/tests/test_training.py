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
        result = self.train("whole", on_step=steps.append, eval_split=0.25)
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
            self.train("parts", on_step=stop, eval_split=0.25)
        with self.assertRaisesRegex(kernelforge.InvalidError, "has checkpoints"):
            self.train("parts", eval_split=0.25)
        steps.clear()
        self.train("parts", on_step=steps.append, eval_split=0.25, resume=True)
        self.assertEqual([step.step for step in steps], [3, 4])
        self.assertEqual(self.adapter("parts"), self.adapter("whole"))

    def test_errors(self):
        with self.assertRaisesRegex(kernelforge.InvalidError, "give 'lora', a rank"):
            kernelforge.train(data=self.data, output=self.path("out"))
        with self.assertRaisesRegex(kernelforge.InvalidError, "exclude each other"):
            self.train("out", full=True)
        with self.assertRaisesRegex(kernelforge.InvalidError, "'clip' is -1"):
            self.train("out", clip=-1)
        with self.assertRaisesRegex(kernelforge.NotFoundError, "no checkpoint"):
            self.train("out", resume=True)
        self.data = self.path("none.jsonl")
        with self.assertRaisesRegex(kernelforge.Error, "cannot open"):
            self.train("out")


if __name__ == "__main__":
    unittest.main()
