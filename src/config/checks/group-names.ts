import type { Draft } from '#config/context/draft.ts'
import { Dn } from '#identity/dn.ts'
import type { Issues } from '#kernel/issues.ts'
import type { GroupNames } from '#sdk/module/module.ts'

/** Begins the warnings of `checkGroupNames`. */
export const unreturnedName = 'the directory does not return this name'

interface Server extends GroupNames {
  readonly insert: string
  readonly suffix: Dn
}

/** Names of groups in rules and mappings that the LDAP servers of the directory have elsewhere, or not at all. */
export function checkGroupNames({ inserts, groupNames }: Draft, issues: Issues): void {
  const servers: Server[] = []
  const branches: Dn[] = []
  for (const { name, suffix, insert } of inserts.map(({ config }) => config)) {
    if (insert.groupNames === undefined) branches.push(suffix)
    else servers.push({ ...insert.groupNames, insert: name, suffix })
  }
  if (servers.length === 0) return
  for (const { config: text, path, document } of groupNames) {
    const dn = parsed(text)
    if (dn === undefined || branches.some((branch) => dn.isWithin(branch))) continue
    const place = servers.filter((server) => dn.isWithin(server.suffix))
    const reasons = (place.length > 0 ? place : servers).map((server) => whyUnreturned(dn, server))
    const reason = reasons.includes(undefined) ? undefined : (reasons.find((one) => one !== '') ?? ofNoServer(dn))
    if (reason !== undefined) issues.for(document).warning(path, `${unreturnedName}: ${reason}`)
  }
}

/** Undefined if the server may return the name; empty if the name is of another server. */
function whyUnreturned(dn: Dn, { insert, base, isMoved, suffix }: Server): string | undefined {
  if (dn.isWithin(suffix)) {
    const own = dn.rebase(suffix, base)
    return isMoved ? undefined : `DirectoryInsert "${insert}" keeps names as the server has them. Use "${own}"`
  }
  if (isMoved && dn.isWithin(base)) {
    const moved = dn.rebase(base, suffix)
    return `in DirectoryInsert "${insert}", names below ${base} are below ${suffix}. Use "${moved}", or set its dnAttribs without memberOf`
  }
  const context = contextOf(dn)
  return context !== undefined && contextOf(base)?.equals(context) === false ? '' : undefined
}

const ofNoServer = (dn: Dn): string =>
  `no DirectoryInsert has a server with names below ${contextOf(dn)}. Correct it, unless another login sets it`

/** The domain of an LDAP server; undefined for a name without one. */
function contextOf({ rdns }: Dn): Dn | undefined {
  const start = rdns.findLastIndex(([part]) => part?.type.toLowerCase() !== 'dc') + 1
  return start === rdns.length ? undefined : new Dn(rdns.slice(start))
}

/** A name with a single part could be any text with an equals sign. */
function parsed(text: string): Dn | undefined {
  try {
    const dn = Dn.parse(text)
    return dn.rdns.length < 2 ? undefined : dn
  } catch {
    return undefined
  }
}
