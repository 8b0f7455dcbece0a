import type { CompareFilter, PresentFilter, SubstringFilter } from '#identity/filter/ast.ts'
import type { MatchingRules, ServerSchema } from '#protocols/ldap/server-schema.ts'

type ValueLeaf = (CompareFilter & { readonly kind: 'equal' }) | SubstringFilter

/**
 * The condition for a server with this schema: true of every entry that the given one is true of here. A server has no
 * answer about an attribute without a matching rule, counts letter case where we don't, folds fewer letters, and
 * combines a letter with the accent that follows it.
 */
export function narrowedLeaf(leaf: ValueLeaf, schema: ServerSchema | undefined): ValueLeaf | PresentFilter {
  const rules = schema?.rulesOf(leaf.attribute)
  if (rules === undefined) return leaf
  return leaf.kind === 'equal' ? narrowedEqual(leaf, rules) : narrowedParts(leaf, rules)
}

const hasCase = (text: string): boolean => text.toLowerCase() !== text.toUpperCase()

/** Compares without regard to letter case, or values that have none. */
const ignoringCase =
  /^(?:caseignore|uuid|distinguishedname|uniquemember|integer|numericstring|generalizedtime|objectidentifier)/

/** Letters of European languages that every server folds as we do, so that its index for equality serves them. */
const foldedAlike =
  /^[\p{ASCII}\u00c0-\u00de\u00e0-\u012f\u0132-\u017e\u0388-\u03a1\u03a4-\u03c1\u03c4-\u03ce\u0400-\u045f]*$/u

function narrowedEqual(leaf: CompareFilter & { readonly kind: 'equal' }, rules: MatchingRules) {
  const { value, caseExact = false } = leaf
  const { equality = '' } = rules
  if (/^boolean/.test(equality) && /^(?:true|false)$/i.test(value)) return { ...leaf, value: value.toUpperCase() }
  const isWide = !hasCase(value) || (ignoringCase.test(equality) ? foldedAlike.test(value) : caseExact)
  return equality !== '' && isWide ? leaf : containing(leaf, [{ text: value, isFirst: true, isLast: true }], rules)
}

function narrowedParts(leaf: SubstringFilter, rules: MatchingRules): SubstringFilter | PresentFilter {
  const { initial = '', any, final = '' } = leaf
  const inside = any.map((text) => ({ text, isFirst: false, isLast: false }))
  const first = { text: initial, isFirst: true, isLast: false }
  return containing(leaf, [first, ...inside, { text: final, isFirst: false, isLast: true }], rules)
}

interface Part {
  readonly text: string
  /** It starts or ends the value. */
  readonly isFirst: boolean
  readonly isLast: boolean
}

/** Servers change spaces and other characters for comparison, so only visible ASCII characters are compared. */
const visible = /[!-~]+/g
const visibleWithoutLetters = /[!-@[-`{-~]+/g

function containing(
  leaf: ValueLeaf,
  parts: readonly Part[],
  { substring = '' }: MatchingRules,
): SubstringFilter | PresentFilter {
  const { attribute, caseExact = false } = leaf
  if (!/^case(?:ignore|exact)(?:ia5)?substringsmatch$/.test(substring)) return { kind: 'present', attribute }
  const pattern = caseExact || substring.startsWith('caseignore') ? visible : visibleWithoutLetters
  const pieces = parts.flatMap(({ text, isFirst, isLast }) =>
    Array.from(text.matchAll(pattern), ({ 0: piece, index }): Part => {
      const isEnd = isLast && index + piece.length === text.length
      // An accent may follow the last letter.
      return { text: isEnd ? piece : piece.replace(/[A-Za-z<=>]$/, ''), isFirst: isFirst && index === 0, isLast: isEnd }
    }),
  )
  const kept = pieces.filter(({ text }) => text !== '')
  if (kept.length === 0) return { kind: 'present', attribute }
  const initial = kept.find(({ isFirst }) => isFirst)
  const final = kept.find((piece) => piece.isLast && piece !== initial)
  return {
    kind: 'substring',
    attribute,
    initial: initial?.text,
    any: kept.filter((piece) => piece !== initial && piece !== final).map(({ text }) => text),
    final: final?.text,
  }
}
