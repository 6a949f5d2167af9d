// Long names in the code of tables may break behind their punctuation, and pieces that are long even then behind `_`. A browser breaks no
// word, so the other columns would leave the page.
for (const code of document.querySelectorAll('.content td code')) {
    if (code.textContent.length < 18) continue;
    const pieces = code.textContent
        .split(/(?<=\S[/.:=,(])/)
        .flatMap(piece => (piece.length > 20 ? piece.split(/(?<=_)/) : piece));
    code.replaceChildren(...pieces.flatMap(piece => [piece, document.createElement('wbr')]));
}
