import { openScimTarget, type ScimConfig, type ScimTarget } from '#adapters/targets/scim/scim-target.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { type GroupTarget, nestsGroups } from '#sdk/target/target.ts'
import type { ScimBehind } from '#testing/scim/scim-behind.ts'

/** The target of a server that has all that SCIM has. */
export type WholeScimTarget = ScimTarget &
  GroupTarget &
  Required<Pick<ScimTarget & GroupTarget, 'changeMemberGroups' | 'containingGroups'>>

const isWhole = (target: ScimTarget): target is WholeScimTarget =>
  nestsGroups(target) && target.containingGroups !== undefined

/** A target for the server behind, or for a proxy in front of it. */
export async function openTargetOn({ client }: ScimBehind, more: Partial<ScimConfig> = {}): Promise<WholeScimTarget> {
  const target = await openScimTarget(
    {
      url: new URL(client.base),
      access: { kind: 'token', token: client.token },
      authority: undefined,
      profile: undefined,
      memberships: 'user',
      missingGroups: 'refuse',
      passwords: false,
      timeoutMillis: 10_000,
      ...more,
    },
    { name: 'behind', log: silentLogger, clock: systemClock, javaScript: () => undefined },
  )
  if (!isWhole(target)) throw new Error('the target has no groups in groups')
  return target
}

export const groupNames = ['group1', 'group2', 'group3'] as const

/** Deletes everything but three empty groups. */
export async function freshBehind(behind: ScimBehind): Promise<void> {
  await behind.empty()
  for (const displayName of groupNames) await behind.client.post('/Groups', { displayName })
}
