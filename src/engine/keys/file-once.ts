import { link, mkdir, open, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { readSmallFileIfPresent } from '#kernel/small-file.ts'

/**
 * The text of a file that only we may read, made when there is none. It is written whole under another name and then
 * linked to its own, which fails when that is taken: of several processes one wins, and all return its text.
 */
export async function fileOnce(path: string, make: () => Promise<string>): Promise<string> {
  const present = await readSmallFileIfPresent(path)
  if (present !== undefined) return present
  const text = await make()
  const folder = dirname(path)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const draft = join(folder, `.${newId()}.tmp`)
  try {
    await writeDurably(draft, text)
    await link(draft, path)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  } finally {
    await unlink(draft).catch(() => {})
  }
  const kept = await readSmallFileIfPresent(path)
  if (kept === undefined) throw new GatewayError('INTERNAL', `${path} vanished while it was made`)
  return kept
}

async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
}
