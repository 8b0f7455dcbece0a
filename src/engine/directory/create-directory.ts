import { MappedInsert } from '#engine/directory/mapped-insert.ts'
import { type Mount, VirtualDirectory } from '#engine/directory/virtual-directory.ts'
import type { Dn } from '#identity/dn.ts'
import type { Scope } from '#kernel/scope.ts'
import { AccountsInsert } from '#sdk/directory/accounts-insert.ts'
import type { DirectoryInsert } from '#sdk/directory/directory-insert.ts'
import type { Configuration, InsertConfig } from '#sdk/module/configuration.ts'
import { hasLookups, type Target } from '#sdk/target/target.ts'

/** The tree that the inserts make; without any, each target with look-ups is the branch `ou=<target>` of the root. */
export async function createDirectory(
  { inserts, directoryRoot }: Pick<Configuration, 'inserts' | 'directoryRoot'>,
  targets: ReadonlyMap<string, Target>,
  create: (config: InsertConfig) => Promise<DirectoryInsert>,
  scope: Scope,
): Promise<VirtualDirectory> {
  if (inserts.length === 0) return new VirtualDirectory(targetBranches(directoryRoot, targets))
  const mounts: Mount[] = []
  for (const config of inserts) {
    const { name, suffix, mapping } = config
    const insert = scope.own(await create(config))
    mounts.push({ name, suffix, insert: mapping.size === 0 ? insert : new MappedInsert(insert, suffix, mapping) })
  }
  return new VirtualDirectory(mounts)
}

export function targetBranches(root: Dn, targets: ReadonlyMap<string, Target>): Mount[] {
  return [...targets].flatMap(([name, target]) => {
    if (!hasLookups(target)) return []
    const suffix = root.child('ou', name)
    const layout = {
      people: suffix,
      groups: suffix.child('ou', 'groups'),
      userAttribute: 'uid',
      groupAttribute: 'cn',
    }
    return [{ name, suffix, insert: new AccountsInsert(target, layout, name) }]
  })
}
