import type { SourceFile } from '#config/sources/folder-documents.ts'
import { mayHoldValues, type ParsedFiles, parseFiles } from '#config/sources/parse.ts'
import type { Issues } from '#kernel/issues.ts'

/** The file of objects that the gateway brings itself. */
export const builtInFile = '(built in)'

/** The root of the orgs in every configuration of OpenUnison. */
const rootUuid = 'B158BD40-0C1B-11E3-8FFD-0800200C9A66'

const anonymousMechanism = `apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata: { name: anon }
spec: { className: auth.Anonymous, uri: /auth/anon, init: { userName: uid=Anonymous } }
`

const anonymousChain = `apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata: { name: anon }
spec: { level: 0, authMechs: [{ name: anon, required: required }] }
`

/** Every user of the directory's root sees it: in OpenUnison an org without rules is visible to all. */
const rootOrg = `apiVersion: openunison.tremolo.io/v1
kind: Org
metadata: { name: openunison-root }
spec:
  label: Home
  uuid: ${rootUuid}
  azRules: [{ scope: dn, constraint: '#[directoryRoot:o=Tremolo]' }]
`

const ownNames: ReadonlySet<string> = new Set(['anon', 'openunison-root'])

/**
 * Adds the objects that OpenUnison brings itself, if the files mention and don't define them: the chain and mechanism
 * `anon`, and the root org.
 */
export function withBuiltIn(parsed: ParsedFiles, files: readonly SourceFile[], issues: Issues): ParsedFiles {
  // What can't be read may define them, with other rules.
  if (parsed.unread.some((part) => mayHoldValues(part) || ownNames.has(part.name ?? ''))) return parsed
  const mentions = (word: RegExp) => files.some(({ text }) => word.test(text))
  const defines = (kind: string, name: string) =>
    parsed.objects.some((object) => object.kind.kind === kind && object.name === name)
  const texts: string[] = []
  if (mentions(/\banon\b/)) {
    if (!defines('AuthenticationMechanism', 'anon')) texts.push(anonymousMechanism)
    if (!defines('AuthenticationChain', 'anon')) texts.push(anonymousChain)
  }
  const hasRoot = parsed.objects.some(
    ({ kind, document }) => kind.kind === 'Org' && document.yaml.scalarText(['spec', 'uuid']) === rootUuid,
  )
  if (!hasRoot && mentions(new RegExp(rootUuid))) texts.push(rootOrg)
  if (texts.length === 0) return parsed
  const { objects } = parseFiles([{ name: builtInFile, text: texts.join('---\n'), isObject: true }], issues)
  return { ...parsed, objects: [...parsed.objects, ...objects] }
}
