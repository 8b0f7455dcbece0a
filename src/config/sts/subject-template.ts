import type { BuildContext } from '#config/context/build-context.ts'
import type { StsEndpointSpec } from '#config/kinds/sts.ts'
import type { Filter } from '#identity/filter/ast.ts'
import type { Path } from '#kernel/issues.ts'
import { attributeParts, parseTemplate, type TemplatePart } from '#kernel/template.ts'
import type { Rule } from '#sdk/rule/rule.ts'
import { type Subjects, unknownAttribute } from './subjects.ts'

const defaultSubject = '${token_sub}'

/** The template of the subject: as configured, or the usual one of the consumer. */
export function subjectText({
  subject,
  preset,
  issuer,
}: Pick<StsEndpointSpec, 'subject' | 'preset' | 'issuer'>): string {
  const domain = issuer.host.toLowerCase().replace(/:\d+$/, '')
  const usual = preset === 'spiffe' ? `spiffe://${domain}/ns/\${namespace}/sa/\${saname}` : defaultSubject
  return subject ?? usual
}

/** The trust domain may not come from an attribute: a workload would choose it. */
const spiffeTemplate = /^spiffe:\/\/[a-z0-9._-]{1,255}\/./

/** Consumers cannot distinguish two workloads that get one subject. */
export function checkSubject(
  spec: StsEndpointSpec,
  subjects: Subjects,
  rules: readonly Rule[],
  at: Path,
  { issues }: BuildContext,
): void {
  const text = subjectText(spec)
  const { areAccounts, clusters, issuers } = subjects
  const places = clusters.length + issuers.length
  const { attributes } = parseTemplate(text, { keys: false, attributes: true })
  // Other problems are reported first.
  const isUnclear = places === 0 || attributes.some((name) => unknownAttribute(name, subjects) !== undefined)
  if (isUnclear || rules.length !== (spec.azRules ?? []).length) return
  const shapes = areAccounts ? accountShapes : issuerShapes
  // Grants allow what no rule names.
  const given = spec.grants === undefined ? rules : []
  const verdict = judgeSubject(text, shapes, { severalPlaces: places > 1, rules: given })
  const path = [...at, 'subject']
  if (spec.preset === 'spiffe' && !spiffeTemplate.test(text)) {
    issues.error(path, 'must be a SPIFFE ID, such as spiffe://example.org/ns/${namespace}/sa/${saname}')
  }
  const who = areAccounts ? 'service accounts' : 'subjects'
  const written = (name: string): string => `\${${name}}`
  switch (verdict.kind) {
    case 'ambiguous': {
      const [left, right] = [written(verdict.left), written(verdict.right)]
      const remedy = areAccounts ? `write ${left}:${right}, since no name contains ":"` : `use ${defaultSubject}`
      issues.error(path, `two ${who} can get the same subject, because ${left} and ${right} run together; ${remedy}`)
      return
    }
    case 'shared': {
      if (spec.sharedSubject === true) return
      const remedy = `add ${verdict.by.map(written).join(' and ')}, or set sharedSubject: true if they may share it`
      issues.error(path, `${who} that differ only in ${verdict.by.join(' and ')} get the same subject; ${remedy}`)
      return
    }
    case 'unique':
      if (spec.sharedSubject !== true) return
      issues.warning([...at, 'sharedSubject'], `has no effect: no two ${who} get the same subject`)
  }
}

/** What an attribute's values consist of, and which parts of an identity can be read back from them. */
interface AttributeShape {
  /** Every character that a value can have. */
  readonly characters: RegExp
  readonly identifies: readonly string[]
}

/** The attributes of a kind of subjects; others may have any value and identify no one. */
interface SubjectShapes {
  readonly attributes: ReadonlyMap<string, AttributeShape>
  /** What distinguishes two subjects; `several` is left out if all subjects come from one place. */
  readonly identity: readonly string[]
  readonly several: string
}

const label = /[a-z0-9-]/
const subdomain = /[a-z0-9.-]/
const place = /[A-Za-z0-9._-]/
const anything = /./s

/** Kubernetes restricts the names of namespaces and accounts to these characters, and `tokenContent` refuses others. */
export const accountShapes: SubjectShapes = {
  identity: ['namespace', 'saname'],
  several: 'cluster',
  attributes: new Map<string, AttributeShape>([
    ['namespace', { characters: label, identifies: ['namespace'] }],
    ['saname', { characters: subdomain, identifies: ['saname'] }],
    ['cluster', { characters: place, identifies: ['cluster'] }],
    ['token_sub', { characters: /[A-Za-z0-9._:-]/, identifies: ['cluster', 'namespace', 'saname'] }],
    ['sub', { characters: /[a-z0-9.:-]/, identifies: ['namespace', 'saname'] }],
    ['username', { characters: /[a-z0-9.:-]/, identifies: ['namespace', 'saname'] }],
  ]),
}

/** Only the name of an external issuer follows a rule; claims contain whatever the issuer writes. */
export const issuerShapes: SubjectShapes = {
  identity: ['sub'],
  several: 'issuer',
  attributes: new Map<string, AttributeShape>([
    ['issuer', { characters: place, identifies: ['issuer'] }],
    ['sub', { characters: anything, identifies: ['sub'] }],
    ['token_sub', { characters: anything, identifies: ['issuer', 'sub'] }],
  ]),
}

type SubjectVerdict =
  /** Two different workloads never have one subject. */
  | { readonly kind: 'unique' }
  /** It is not clear where `left` ends and `right` begins. */
  | { readonly kind: 'ambiguous'; readonly left: string; readonly right: string }
  /** Workloads that differ only in these attributes have one subject. */
  | { readonly kind: 'shared'; readonly by: readonly string[] }

/**
 * Whether two different workloads can have one subject. A template is unique if its values can be read back from
 * the subject, and identify the workload: on their own, or together with what every rule requires.
 */
export function judgeSubject(
  text: string,
  shapes: SubjectShapes,
  options: { readonly severalPlaces: boolean; readonly rules: readonly Rule[] },
): SubjectVerdict {
  const { several, identity, attributes } = shapes
  const places = readPlaces(text)
  const fixed = [several, ...identity].filter((name) => isFixed(name, options.rules))
  const known = new Set(options.severalPlaces ? fixed : [several, ...fixed])
  const doubt = readBack(places, shapes, known)
  const identifies = (name: string): readonly string[] => attributes.get(name)?.identifies ?? []
  const identified = new Set([...known].flatMap((name) => [name, ...identifies(name)]))
  const by = [several, ...identity].filter((name) => !identified.has(name))
  if (by.length === 0) return { kind: 'unique' }
  const unread = doubt.find(({ name }) => identifies(name).some((part) => !identified.has(part)))
  if (unread === undefined) return { kind: 'shared', by }
  const at = Math.min(places.indexOf(unread), places.length - 2)
  return { kind: 'ambiguous', left: places[at]?.name ?? '', right: places[at + 1]?.name ?? '' }
}

/** An attribute, and the text between it and the next one. */
interface Place {
  readonly name: string
  readonly behind: string
}

function readPlaces(text: string): Place[] {
  const parts: readonly TemplatePart[] = attributeParts(text)
  return parts.flatMap((part, i): Place[] => {
    if (part.kind === 'text') return []
    const next = parts[i + 1]
    return [{ name: part.name.toLowerCase(), behind: next?.kind === 'text' ? next.text : '' }]
  })
}

/**
 * A value ends before a text with a character that it can't have, and begins after one. So all values can be read
 * back if those from the left and those from the right leave at most one between them. A known value is known at
 * every other occurrence. Adds to `known` what can be read back, and returns what can't.
 */
function readBack(places: readonly Place[], { attributes }: SubjectShapes, known: Set<string>): readonly Place[] {
  const bounds = (name: string, text: string): boolean => {
    const characters = attributes.get(name)?.characters ?? anything
    return Array.from(text).some((character) => !characters.test(character))
  }
  for (;;) {
    const before = known.size
    let from = 0
    for (; from < places.length; from++) {
      const { name = '', behind = '' } = places[from] ?? {}
      if (!known.has(name) && !bounds(name, behind)) break
      known.add(name)
    }
    let to = places.length - 1
    for (; to > from; to--) {
      const name = places[to]?.name ?? ''
      if (!known.has(name) && !bounds(name, places[to - 1]?.behind ?? '')) break
      known.add(name)
    }
    if (from === to) known.add(places[from]?.name ?? '')
    if (from >= to) return []
    if (known.size === before) return places.slice(from, to + 1)
  }
}

/** Whether every rule requires the same single value of the attribute. */
function isFixed(attribute: string, rules: readonly Rule[]): boolean {
  const values = rules.map((rule) => (rule.scope === 'filter' ? demanded(rule.filter, attribute) : undefined))
  const [first] = values
  return first?.size === 1 && values.every((set) => set?.isSubsetOf(first))
}

/** The only values with which the filter can match; undefined if there may be others. */
function demanded(filter: Filter, attribute: string): ReadonlySet<string> | undefined {
  switch (filter.kind) {
    case 'equal':
      return filter.attribute.toLowerCase() === attribute && filter.caseExact !== false
        ? new Set([filter.value])
        : undefined
    case 'and':
      return filter.filters.map((inner) => demanded(inner, attribute)).find((values) => values !== undefined)
    case 'or': {
      const values = filter.filters.map((inner) => demanded(inner, attribute))
      if (values.length === 0 || values.includes(undefined)) return undefined
      return new Set(values.flatMap((set) => [...(set ?? [])]))
    }
    default:
      return undefined
  }
}
