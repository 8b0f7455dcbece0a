import { type Document, visit } from 'yaml'

/**
 * The document as text, with long lines. Texts of several lines become blocks, which people can repair. Where a block
 * can't hold the text, `yaml` writes it in double quotes on one line: split into lines it loses those that are only blanks.
 */
export function yamlText(document: Document): string {
  visit(document, {
    Scalar: (key, node) => {
      if (key === 'key' || typeof node.value !== 'string' || !node.value.includes('\n')) return
      node.type = node.value.trim() === '' ? 'QUOTE_DOUBLE' : 'BLOCK_LITERAL'
    },
  })
  return document.toString({ lineWidth: 0, doubleQuotedMinMultiLineLength: Number.POSITIVE_INFINITY })
}
