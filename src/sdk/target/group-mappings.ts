import { Dn } from '#identity/dn.ts'

/** A group, and a group of another system whose members are in it. */
export interface GroupMapping {
  /** In lower case, as in OpenUnison. */
  readonly group: string
  readonly external: string
}

/** A namespace of a cluster whose GroupMetaData objects are used besides those of the configuration. */
export interface GroupSource {
  readonly target: string
  readonly namespace: string
}

/** The mappings that are in force. */
export interface GroupMappings {
  /** Throws TARGET_UNREACHABLE or TARGET_FAILED if the objects of a cluster can't be read. */
  list(): Promise<readonly GroupMapping[]>
}

/** The same for all names of one group: letter case does not count, and in a distinguished name neither do spaces. */
export const externalKey = (name: string): string => dnKey(name) ?? name.trim().toLowerCase()

/** Undefined if it is not a distinguished name. */
export function dnKey(name: string): string | undefined {
  try {
    const dn = Dn.parse(name)
    return dn.rdns.length === 0 ? undefined : dn.key
  } catch {
    return undefined
  }
}
