"""The preset library: what a person chooses from, and what a colleague's file may do."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from ringside import presets
from ringside.errors import PresetError, RingsideError
from ringside.preset_store import export, save
from ringside.presets import Library, load_preset, parse_preset, render

CLONE = Path(presets.__file__).parents[1]
FILES = sorted((CLONE / "accelerate_configs" / "presets").glob("*.yaml"))
IN_ORDER = (  # noqa: SIM905
    "single ddp ddp_accum4 ddp_accum8 ddp_bf16 ddp_bf16_compiled ddp_bf16_compress ddp_fp16 "
    "fsdp fsdp_bf16 fsdp_fp16"
).split()

TEXT = """\
format: 1
about: {title: Ours, why: It is faster, when: Always}
accelerate: {distributed_type: MULTI_GPU, mixed_precision: bf16}
training: {accumulation_steps: 2}
environment: {NCCL_DEBUG: INFO}
"""


@pytest.fixture
def team(tmp_path, monkeypatch):
    """The team's folder, named by `RINGSIDE_LIBRARY`."""
    folder = tmp_path / "team"
    folder.mkdir()
    monkeypatch.setenv("RINGSIDE_LIBRARY", str(folder))
    return folder


@pytest.fixture
def mail(tmp_path):
    """A file that a colleague sent."""
    path = tmp_path / "from_lea.yaml"
    path.write_text(TEXT)
    return path


def refusal(text: str) -> str:
    with pytest.raises(PresetError) as caught:
        presets.parse_preset(text, name="x", origin="file")
    return str(caught.value)


# --- the built-in library ---------------------------------------------------------------------


def test_every_strategy_of_the_story_is_there_in_reading_order():
    """`single` leads: every speed-up is measured against it."""
    library = Library()
    assert library.faults == []
    names = [preset.name for preset in library if preset.origin == "built-in"]
    assert [name for name in names if name in IN_ORDER] == IN_ORDER
    kinds = [library.get(name).file.accelerate.distributed_type for name in names]
    assert kinds == sorted(kinds, key=["NO", "MULTI_GPU", "FSDP"].index)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
class TestBuiltIn:
    def test_says_why_when_and_limits(self, path):
        about = load_preset(path).about
        assert min(map(len, (about.title, about.why, about.when, about.limits))) > 2

    def test_loads_alike_with_pyyaml(self, path):
        """Accelerate and editors read YAML 1.1; an unquoted `no` would be False there."""
        written = yaml.safe_load(path.read_text())
        settings = load_preset(path).file
        for part in ("accelerate", "training"):
            for key, value in written.get(part, {}).items():
                if key != "fsdp_config":
                    assert getattr(getattr(settings, part), key) == value

    def test_fits_the_schema(self, path):
        jsonschema.validate(yaml.safe_load(path.read_text()), presets.json_schema())

    def test_its_rendered_file_is_current(self, path):
        rendered = CLONE / "accelerate_configs" / path.name
        assert rendered.read_text() == render(load_preset(path)), "run `ringside presets render`"

    def test_accelerate_takes_the_rendered_file(self, path):
        """The launcher wants the count literally, and refuses keys that it does not know."""
        config = yaml.safe_load((CLONE / "accelerate_configs" / path.name).read_text())
        one = config["distributed_type"] == "NO"
        assert config["num_processes"] == (1 if one else 2)
        assert config["main_process_port"] == 0
        assert config["mixed_precision"] in ("no", "fp16", "bf16")
        assert ("fsdp_config" in config) == (config["distributed_type"] == "FSDP")

    def test_needs_a_gpu_exactly_for_fp16_offload_and_data_parallel(self, path):
        preset = load_preset(path)
        settings = preset.file.accelerate
        offloads = bool(settings.fsdp_config and settings.fsdp_config.fsdp_offload_params)
        threads = preset.file.training.parallelism == "data_parallel"
        needs_gpu = settings.mixed_precision == "fp16" or offloads or threads
        assert ("cpu" not in preset.about.devices) == needs_gpu


def test_no_rendered_file_is_left_from_a_preset_that_is_gone():
    rendered = {path.name for path in (CLONE / "accelerate_configs").glob("*.yaml")}
    assert rendered == {path.name for path in FILES}


# --- schema and documents ---------------------------------------------------------------------


def test_the_schema_is_valid_and_current():
    """Editors check preset files with the stored copy."""
    schema = presets.json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    stored = json.loads((CLONE / "docs" / "preset.schema.json").read_text())
    assert stored == json.loads(json.dumps(schema)), "run `make docs`"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("format: 1", "format: 1\nextra: 1"),
        ("accumulation_steps", "acumulation_steps"),
        ("accumulation_steps: 2", "accumulation_steps: 0"),
        ("bf16", "bf61"),
        ("title: Ours, ", ""),
        ("NCCL_DEBUG", "LD_PRELOAD"),
    ],
)
def test_the_schema_and_the_reader_refuse_the_same(old, new):
    text = TEXT.replace(old, new)
    assert text != TEXT
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(text), presets.json_schema())
    refusal(text)


def test_the_schema_and_the_reader_accept_the_same():
    jsonschema.validate(yaml.safe_load(TEXT), presets.json_schema())
    assert presets.parse_preset(TEXT, name="x", origin="file").file.training.accumulation_steps == 2


@pytest.fixture
def generate():
    spec = importlib.util.spec_from_file_location("generate", CLONE / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_presets_replaces_what_stands_between_the_markers(generate):
    text = "# R\n<!-- presets:begin -->\nold\n<!-- presets:end -->\nrest\n"
    written = generate.with_table(text)
    assert written.startswith("# R\n<!-- presets:begin -->\n| preset ")
    assert written.endswith("\n<!-- presets:end -->\nrest\n")
    assert "old" not in written
    assert all(f"| `{name}` | " in written for name in IN_ORDER)
    assert generate.with_table(written) == written
    assert generate.with_table("# R\n") == "# R\n"


def test_the_readme_has_the_current_table(generate):
    readme = (CLONE / "README.md").read_text()
    assert generate.with_table(readme) == readme, "run `make docs`"


# --- libraries --------------------------------------------------------------------------------


def test_the_teams_presets_come_last_and_never_replace_ours(team, mail):
    (team / "ddp.yaml").write_text(TEXT)
    (team / "warm.yaml").write_text(TEXT)
    save("from_lea", mail.read_bytes())
    library = Library()
    assert [(p.name, p.origin) for p in library][-3:] == [
        ("from_lea", "yours"),
        ("team:ddp", "team"),
        ("warm", "team"),
    ]
    assert library.get("ddp").about.title == "DDP"
    assert library.get("team:ddp").about.title == "Ours"


def test_a_broken_file_is_named_and_the_others_stay(team):
    (team / "good.yaml").write_text(TEXT)
    (team / "broken.yaml").write_text("about: [")
    (team / "Bad Name.yaml").write_text(TEXT)
    (team / "empty.yaml").write_text("")
    library = Library()
    assert library.get("good").origin == "team"
    faults = "\n".join(map(str, library.faults))
    assert len(library.faults) == 3
    assert "broken.yaml, line 1" in faults
    assert "'Bad Name' is no name" in faults
    assert "empty.yaml" in faults
    with pytest.raises(PresetError, match=r"broken.yaml, line 1"):
        library.get("broken")


def test_a_team_folder_that_is_not_there_is_no_fault(tmp_path, monkeypatch):
    monkeypatch.setenv("RINGSIDE_LIBRARY", str(tmp_path / "unmounted"))
    assert Library().get("ddp").origin == "built-in"


def test_an_unknown_preset_offers_the_nearest():
    with pytest.raises(PresetError, match="Did you mean 'ddp_bf16'"):
        Library().get("ddp_bf61")


# --- import and export ------------------------------------------------------------------------


def test_what_is_saved_is_exported_byte_for_byte(mail, tmp_path):
    """Comments and spelling of a colleague's file are kept."""
    content = b"\xef\xbb\xbf# why: \xe2\x80\x9cslow link\xe2\x80\x9d\r\n" + TEXT.encode()
    saved = save("from_lea", content)
    assert saved.origin == "yours"
    assert Library().get("from_lea") == saved
    target = export(saved, mail.with_name("copy.yaml"))
    assert target.read_bytes() == content
    mail.unlink()
    target = export(saved, tmp_path)
    assert target.name == "from_lea.yaml"
    assert target.read_bytes() == content


def test_export_never_overwrites(mail, tmp_path):
    preset = Library().get("ddp")
    (tmp_path / "ddp.yaml").write_text("mine")
    for target in (tmp_path, tmp_path / "ddp.yaml"):
        with pytest.raises(PresetError, match="exists already"):
            export(preset, target)
    with pytest.raises(PresetError, match="does not exist"):
        export(preset, tmp_path / "nowhere" / "x.yaml")
    assert (tmp_path / "ddp.yaml").read_text() == "mine"


def test_a_preset_of_the_team_is_exported_under_its_own_name(team, tmp_path):
    (team / "ddp.yaml").write_text(TEXT)
    target = export(Library().get("team:ddp"), tmp_path)
    assert target == tmp_path / "ddp.yaml"


@pytest.mark.parametrize(
    "name",
    ["", " ", "my preset", "it's", 'say"', "../x", "../../x:y", "a/b", ".hidden", "Ddp", "🦊", "é",
     "x" * 65, "-x", "team:x", "a\nb", "a.b"],
)  # fmt: skip
def test_names_that_are_no_names_are_refused(name, tmp_path):
    """`../x` would leave the library; `team:x` would pretend to be the team's."""
    before = set(tmp_path.rglob("*"))
    with pytest.raises(PresetError) as caught:
        save(name, TEXT.encode())
    assert "is no name for a preset" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert set(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (TEXT.replace("format: 1", "format: 2\nfuture: 1"), "update Ringside"),
        (TEXT.replace("NCCL_DEBUG", "LD_PRELOAD"), "not LD_PRELOAD"),
        (TEXT.replace("NCCL_DEBUG", "PATH"), "not PATH"),
        (TEXT.replace("NCCL_DEBUG", "nccl_debug"), "not nccl_debug"),
        (TEXT.replace("INFO", '"a\\0b"'), "NCCL_DEBUG must be printable"),
        (TEXT.replace("INFO", "4"), "put the value in quotes"),
        (TEXT.replace("MULTI_GPU", "FSDP"), "fsdp_config"),
        ("just words", "about, accelerate, training"),
        ("[1, 2]", "about, accelerate, training"),
    ],
)
def test_content_that_cannot_be_used_is_refused(text, part):
    sentence = refusal(text)
    assert part in sentence
    assert sentence.startswith("x.yaml")


@pytest.mark.parametrize(
    "name", ["NCCL_ALGO", "TORCH_NCCL_BLOCKING_WAIT", "GLOO_SOCKET_IFNAME", "OMP_NUM_THREADS"]
)
def test_variables_of_the_communication_are_allowed(name):
    preset = presets.parse_preset(TEXT.replace("NCCL_DEBUG", name), name="x", origin="file")
    assert preset.file.environment == {name: "INFO"}


def test_a_library_that_cannot_be_written_is_a_sentence(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file" / "below"))
    with pytest.raises(RingsideError, match="Not a directory"):
        save("x", TEXT.encode())


@pytest.mark.parametrize("path", ["missing.yaml", "."])
def test_a_file_that_cannot_be_read_is_a_sentence(path, tmp_path):
    with pytest.raises(PresetError, match="cannot be read"):
        load_preset(tmp_path / path, name="x")


# --- rendering --------------------------------------------------------------------------------


def test_the_count_is_the_askers_then_the_presets_then_two():
    def count(text: str, asked: int | None = None) -> int:
        preset = presets.parse_preset(text, name="x", origin="file")
        return yaml.safe_load(render(preset, asked))["num_processes"]

    pinned = TEXT.replace("bf16}", "bf16, num_processes: 4}")
    one = TEXT.replace("MULTI_GPU", '"NO"')
    assert [count(TEXT), count(TEXT, 8), count(pinned), count(pinned, 8)] == [2, 8, 4, 8]
    assert [count(one), count(one, 1)] == [1, 1]
    for text, asked in ((one, 2), (TEXT, 0), (TEXT, -1)):
        with pytest.raises(PresetError, match=f"cannot start {asked} processes"):
            count(text, asked)


@pytest.mark.parametrize(
    "entry",
    [
        "NCCL_NET_PLUGIN: libevil.so",
        "NCCL_DEBUG_FILE: log.txt",
        "NCCL_TOPO_DUMP_FILE: topo.xml",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE: x",
        "NCCL_DEBUG: /home/me/.bashrc",
        "LD_PRELOAD: x.so",
    ],
)
def test_a_preset_cannot_name_a_library_or_a_file(entry):
    text = (
        "about: {title: T, why: w, when: w}\naccelerate: {distributed_type: MULTI_GPU}\n"
        f"environment: {{{entry}}}\n"
    )
    with pytest.raises(PresetError, match="environment"):
        parse_preset(text, name="theirs", origin="file")


def test_direct_peer_access_is_no_directory():
    text = (
        "about: {title: T, why: w, when: w}\naccelerate: {distributed_type: MULTI_GPU}\n"
        "environment: {NCCL_P2P_DIRECT_DISABLE: '1'}\n"
    ).replace("'", '"')
    assert parse_preset(text, name="x", origin="file").file.environment
