"""Translates the standard headings of papers in other languages to English.

Only whole phrases that name a standard part of a paper are included: a single foreign word inside a heading says no
more about a section than any other word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

_MEANINGS: Final = MappingProxyType(
    {
        # In these languages the same word is used for the abstract before the text and the summary after it.
        "summary": """Zusammenfassung, Kurzfassung, Résumé, Resumen, Resumo, Riassunto, Samenvatting, 摘要,
            内容提要, 要旨, 要約, 概要""",
        "introduction": """Einleitung, Einführung, Introduction générale, Introducción, Introdução, Introduzione,
            Inleiding, 引言, 绪论, 緒論, 前言, 导言, はじめに, 序論, 緒言""",
        "background": "Hintergrund, Contexte, Antecedentes, Contexto, 背景, 研究背景",
        "related work": """Stand der Forschung, Stand der Technik, Verwandte Arbeiten, État de l'art, Travaux connexes,
            Travaux antérieurs, Revue de la littérature, Estado del arte, Trabajos relacionados, Marco teórico,
            Revisión de la literatura, Estado da arte, Trabalhos relacionados, Revisão da literatura,
            Stato dell'arte, Lavori correlati, 相关工作, 文献综述, 関連研究, 先行研究""",
        "methods": """Methoden, Methode, Methodik, Material und Methoden, Materialien und Methoden, Patienten und
            Methoden, Méthodes, Méthode, Méthodologie, Matériel et méthodes, Matériels et méthodes, Matériaux et
            méthodes, Patients et méthodes, Métodos, Método, Metodología, Materiales y métodos, Material y métodos,
            Pacientes y métodos, Métodos e materiais, Materiais e métodos, Material e métodos, Metodologia,
            Materiali e metodi, Metodi, 方法, 研究方法, 材料与方法, 材料和方法, 实验方法, 手法, 提案手法""",
        "results": """Ergebnisse, Resultate, Résultats, Resultados, Risultati, Resultaten, 结果, 結果, 实验结果,
            実験結果, 研究结果""",
        "experiments": "Experimente, Expérimentations, Experimentos, Esperimenti, 实验, 実験",
        "evaluation": "Auswertung, Évaluation, Evaluación, Avaliação, Valutazione, 评估, 評価",
        "discussion": "Diskussion, Discusión, Discussão, Discussione, Discussie, 讨论, 討論, 考察",
        "conclusion": """Schlussfolgerung, Schlussfolgerungen, Fazit, Schluss, Schlussbetrachtung, Conclusion générale,
            Conclusión, Conclusiones, Consideraciones finales, Conclusão, Conclusões, Considerações finais,
            Conclusioni, Conclusione, Conclusie, 结论, 結論, 结束语, 总结, 结语, おわりに, まとめ""",
        "outlook": "Ausblick, Perspectivas, Prospettive, 展望",
        "acknowledgements": """Danksagung, Remerciements, Agradecimientos, Agradecimentos, Ringraziamenti, Dankwoord,
            致谢, 謝辞""",
        "references": """Literaturverzeichnis, Literatur, Quellenverzeichnis, Références, Références bibliographiques,
            Bibliographie, Referencias, Referencias bibliográficas, Bibliografía, Referências, Referências
            bibliográficas, Bibliografia, Riferimenti bibliografici, Literatuur, 参考文献, 参考文献一覧, 引用文献""",
        "competing interests": """Interessenkonflikt, Interessenkonflikte, Conflits d'intérêts, Conflit d'intérêts,
            Conflicto de intereses, Conflictos de interés, Conflito de interesses, Conflitos de interesse,
            Conflitto di interessi, 利益冲突, 利益相反""",
        "funding": "Finanzierung, Financement, Financiación, Financiamento, Finanziamento",
        "keywords": """Schlüsselwörter, Schlagwörter, Mots-clés, Mots clés, Palabras clave, Palavras-chave, Parole
            chiave, 关键词, キーワード""",
        "appendix": "Anhang, Annexe, Annexes, Anexo, Anexos, Apéndice, Apêndice, Appendice, 附录, 付録",
    }
)
_AND = re.compile(r"(?<!\s)\s++(?:und|et|y|e|en)\s++|[与和及と]")
_EAST_ASIAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
# "一、引言", "第一章 绪论", "1.2方法"
_COUNTED = re.compile(r"^(?:第?[一二三四五六七八九十\d]+[章节節]\s*|[一二三四五六七八九十]+[、.．]\s*|[\d.．]+\s*)")


def _folded(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold().replace("’", "'"))
    return "".join(character for character in plain if not unicodedata.combining(character))


def _phrases() -> Iterator[tuple[str, str]]:
    for meaning, listed in _MEANINGS.items():
        for phrase in listed.split(","):
            yield _folded(" ".join(phrase.split())), meaning


_ENGLISH: Final[Mapping[str, str]] = MappingProxyType(dict(_phrases()))


def in_english(title: str) -> str | None:
    """The English name of a standard heading in another language ("Ergebnisse": "results"); None for any other.

    Two joined headings ("Ergebnisse und Diskussion") are both translated. `title` has no numbering, in any case.
    """
    text = _folded(title)
    if _EAST_ASIAN.search(text):
        text = re.sub(r"\s+", "", _COUNTED.sub("", text))
    if text in _ENGLISH:
        return _ENGLISH[text]
    first, *others = _AND.split(text, maxsplit=1)
    if not others or first not in _ENGLISH:
        return None
    return " and ".join([_ENGLISH[first], *(_ENGLISH.get(other, other) for other in others)])
