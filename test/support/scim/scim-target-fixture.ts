import type { ScimConfig, ScimTarget } from '#adapters/targets/scim/scim-target.ts'
import { openScimTarget } from '#adapters/targets/scim/scim-target.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { ScimBehind } from '#testing/scim/scim-behind.ts'

/** A target for the server behind, or for a proxy in front of it. */
export const openTargetOn = ({ client }: ScimBehind, more: Partial<ScimConfig> = {}): Promise<ScimTarget> =>
  openScimTarget(
    {
      url: new URL(client.base),
      access: { kind: 'token', token: client.token },
      authority: undefined,
      memberships: 'user',
      passwords: false,
      timeoutMillis: 10_000,
      ...more,
    },
    { name: 'behind', log: silentLogger, clock: systemClock, javaScript: () => undefined },
  )

export const groupNames = ['group1', 'group2', 'group3'] as const

/** Deletes everything but three empty groups. */
export async function freshBehind(behind: ScimBehind): Promise<void> {
  await behind.empty()
  for (const displayName of groupNames) await behind.client.post('/Groups', { displayName })
}
