import { Dn } from '#identity/dn.ts'

/** The name that `dn` has when what stands at `from` stands at `to`; undefined for a name that is not within `from`. */
export function movedName(dn: Dn, from: Dn, to: Dn): Dn | undefined {
  if (!dn.isWithin(from)) return undefined
  return new Dn([...dn.rdns.slice(0, dn.rdns.length - from.rdns.length), ...to.rdns])
}
