import type { BuildContext } from '#config/context/build-context.ts'
import type { ConfigDocument } from '#config/context/config-document.ts'
import type { Draft } from '#config/context/draft.ts'
import type { DirectoryInsertSpec } from '#config/kinds/provisioning.ts'
import { Dn, isAttributeType } from '#identity/dn.ts'
import type { Issues } from '#kernel/issues.ts'
import { isForbiddenKey } from '#kernel/json.ts'

export function buildDirectoryInsert(spec: DirectoryInsertSpec, context: BuildContext): void {
  const { state, issues, placed, document } = context
  const module = context.module(state.catalog.directoryInserts, spec.className, ['spec', 'className'])
  const params = context.params(spec.params, ['spec', 'params'], spec.secretParams, ['spec', 'secretParams'])
  const suffix = readSuffix(spec.suffix, context)
  const mapping = readMapping(spec.mapping ?? {}, issues)
  const insert = module?.prepare(params, issues, context)
  if (insert === undefined || suffix === undefined) return
  state.draft.inserts.push({ config: { ...placed, insert, suffix, order: spec.order ?? 0, mapping }, document })
}

function readSuffix(text: string, { issues }: BuildContext): Dn | undefined {
  try {
    return Dn.parse(text)
  } catch (error) {
    issues.error(
      ['spec', 'suffix'],
      `"${text}" is not a name: ${error instanceof Error ? error.message : String(error)}`,
    )
    return undefined
  }
}

/** LDAP names, and SCIM names such as `name.familyName`. */
const isName = (name: string): boolean => isAttributeType(name) || /^[A-Za-z][\w.:$-]{0,255}$/.test(name)

/** Each name on either side once, so that the mapping works in both directions. */
function readMapping(spec: Readonly<Record<string, string>>, issues: Issues): Map<string, string> {
  const mapping = new Map<string, string>()
  const taken = new Map<string, string>()
  for (const [local, remote] of Object.entries(spec)) {
    const path = ['spec', 'mapping', local]
    const wrong = [local, remote].find((name) => !isName(name) || isForbiddenKey(name))
    if (wrong !== undefined) issues.error(path, `"${wrong}" is not the name of an attribute`)
    for (const key of [`local ${local.toLowerCase()}`, `remote ${remote.toLowerCase()}`]) {
      const earlier = taken.get(key)
      if (earlier !== undefined) issues.error(path, `says the same name as "${earlier}"`)
      taken.set(key, local)
    }
    mapping.set(local, remote)
  }
  return mapping
}

/** Every insert is below the root of the directory or of a chain, and no two have the same suffix. */
export function checkInserts(draft: Draft, root: Dn, issues: Issues): void {
  const first = new Map<string, ConfigDocument>()
  const roots = searchedRoots(draft, root)
  for (const { config, document } of draft.inserts) {
    const report = (message: string) => issues.for(document).error(['spec', 'suffix'], message)
    if (!roots.some((one) => config.suffix.isWithin(one))) {
      report(`"${config.suffix}" is neither within the root of the directory, ${root}, nor within the root of a chain`)
    }
    const earlier = first.get(config.suffix.key)
    first.set(config.suffix.key, earlier ?? document)
    if (earlier === undefined) continue
    report(`another insert already has the suffix ${config.suffix} (${earlier.at(['spec', 'suffix'])})`)
    draft.rivals.push({ first: earlier, later: document })
  }
}

/** The root of the directory, and those of chains, as far as they can be read. */
export const searchedRoots = (draft: Draft, root: Dn): Dn[] => [
  root,
  ...Array.from(draft.chains.values()).flatMap(({ config }) => {
    try {
      const own = Dn.parse(config.root ?? '')
      return own.rdns.length === 0 ? [] : [own]
    } catch {
      return []
    }
  }),
]
