"""The look: Gradio's variables set to a few colours and system fonts; the rest is `style.css`.

No font is loaded from anywhere. Light and dark follow the system.
"""

from __future__ import annotations

from pathlib import Path

import gradio as gr

STYLE = Path(__file__).with_name("style.css")

_SANS = ("ui-sans-serif", "system-ui", "Segoe UI", "Roboto", "Helvetica Neue", "sans-serif")
_MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace")

# name: (light, dark); the same colours stand at the top of style.css.
_COLOURS = {
    "body_background_fill": ("#f7f8fa", "#0e1116"),
    "body_text_color": ("#14181f", "#e8ecf1"),
    "body_text_color_subdued": ("#5b6573", "#9aa6b5"),
    "background_fill_primary": ("#ffffff", "#161b22"),
    "background_fill_secondary": ("#f7f8fa", "#0e1116"),
    "border_color_primary": ("#e3e7ed", "#2a323d"),
    "block_background_fill": ("#ffffff", "#161b22"),
    "block_border_color": ("#e3e7ed", "#2a323d"),
    "block_label_text_color": ("#5b6573", "#9aa6b5"),
    "block_info_text_color": ("#5b6573", "#9aa6b5"),
    "block_title_text_color": ("#14181f", "#e8ecf1"),
    "input_background_fill": ("#f7f8fa", "#0e1116"),
    "input_border_color": ("#d5dae2", "#343d4a"),
    "input_border_color_focus": ("#0f766e", "#2dd4bf"),
    "input_placeholder_color": ("#6b7482", "#8b97a7"),
    "color_accent_soft": ("#e3f1ef", "#12302d"),
    "button_primary_background_fill": ("#0f766e", "#2dd4bf"),
    "button_primary_background_fill_hover": ("#0b5f58", "#5fe0d0"),
    "button_primary_text_color": ("#ffffff", "#06201d"),
    "button_secondary_background_fill": ("#ffffff", "#161b22"),
    "button_secondary_background_fill_hover": ("#f0f2f5", "#1e252e"),
    "button_secondary_text_color": ("#14181f", "#e8ecf1"),
    "button_secondary_border_color": ("#d5dae2", "#343d4a"),
    "button_cancel_background_fill": ("#ffffff", "#161b22"),
    "button_cancel_background_fill_hover": ("#fdeeed", "#2b1a1b"),
    "button_cancel_text_color": ("#b3261e", "#ff8a80"),
    "button_cancel_border_color": ("#d9a6a2", "#5c3330"),
}

_PLAIN = {
    "block_border_width": "0px",
    "block_padding": "0px",
    "block_shadow": "none",
    "block_label_background_fill": "transparent",
    "block_title_text_weight": "500",
    "block_title_text_size": "13px",
    "block_info_text_size": "12px",
    "input_border_width": "1px",
    "input_padding": "8px 11px",
    "input_radius": "8px",
    "input_shadow": "none",
    "input_text_size": "14px",
    "layout_gap": "18px",
    "form_gap_width": "0px",
    "button_border_width": "1px",
    "button_large_padding": "9px 18px",
    "button_large_radius": "9px",
    "button_large_text_size": "14px",
    "button_large_text_weight": "600",
    "button_medium_radius": "9px",
    "button_medium_text_weight": "500",
    "button_primary_border_color": "transparent",
    "button_primary_shadow": "none",
    "button_secondary_shadow": "none",
}


def theme() -> gr.themes.Base:
    """Gradio's base theme in Ringside's colours."""
    values = dict(_PLAIN)
    for name, (light, dark) in _COLOURS.items():
        values[name], values[f"{name}_dark"] = light, dark
    base = gr.themes.Base(
        primary_hue=gr.themes.colors.teal,
        neutral_hue=gr.themes.colors.slate,
        font=_SANS,
        font_mono=_MONO,
    )
    return base.set(**values)
