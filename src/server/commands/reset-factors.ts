import { userInfo } from 'node:os'
import { nameKey } from '#engine/second-factors/second-factors.ts'
import { Dn } from '#identity/dn.ts'
import { systemClock } from '#kernel/clock.ts'
import { newId } from '#kernel/ids.ts'
import type { CommandIo } from '#server/commands/commands.ts'
import type { Storage } from '#storage/open.ts'

/**
 * `gatehouse user reset-factors DN`: for somebody who lost their second factors and recovery codes. Also for people whom
 * no embedded directory knows. Throws an Error for a text that is no name, and for a name that has none.
 */
export async function resetFactors(
  written: string,
  by: string | undefined,
  { secondFactors }: Pick<Storage, 'secondFactors'>,
  io: CommandIo,
): Promise<void> {
  const dn = Dn.parse(written)
  const subject = dn.rdns[0]?.[0]?.value ?? written
  const removed = await secondFactors.removeAllOfName(nameKey({ dn }), [
    {
      id: newId(),
      time: systemClock(),
      requestor: by ?? `${userInfo().username} (command line)`,
      subject,
      workflow: { id: '', name: 'gatehouse user reset-factors' },
      target: 'gatehouse',
      kind: 'attribute',
      action: 'delete',
      attribute: 'second factor',
      value: 'all',
    },
  ])
  if (removed === 0) throw new Error(`nobody with second factors is called "${dn}"`)
  io.stdout(`${removed} removed`)
}
