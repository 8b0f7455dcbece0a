import type { Difference } from '#features/reconciliation/plan/difference.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import type { LookupTarget } from '#sdk/target/target.ts'

const width = 8
const mostNames = 5

/** Adds to the reason which groups that the person should join the target does not have. `known` has what was looked up. */
export async function withMissingGroups(
  target: LookupTarget,
  difference: Difference,
  known = new Map<string, Promise<boolean>>(),
): Promise<Difference> {
  const { add } = difference.groups
  const isThere = (name: string): Promise<boolean> => {
    const key = name.toLowerCase()
    const found = known.get(key) ?? lookUp(target, name)
    known.set(key, found)
    return found
  }
  const missing = (await inParallel(add, width, async (name) => ((await isThere(name)) ? [] : [name]))).flat()
  if (missing.length === 0) return difference
  const names = missing.slice(0, mostNames).map((name) => JSON.stringify(name))
  const more = missing.length > mostNames ? ` and ${missing.length - mostNames} more` : ''
  const what = `${missing.length === 1 ? 'group' : 'groups'} ${names.join(', ')}${more}`
  return { ...difference, reason: `${difference.reason} The target does not have the ${what}.` }
}

const lookUp = async (target: LookupTarget, name: string): Promise<boolean> =>
  (await target.lookupGroupByName(name, { members: false })) !== undefined
