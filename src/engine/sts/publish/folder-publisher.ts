import { mkdir, open, rename, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Publisher } from '#engine/sts/publish/publisher.ts'
import { newId } from '#kernel/ids.ts'

/** A folder that a web server shows. A reader finds an old file or a new one, and never a part. */
export const folderPublisher = (folder: string): Publisher => ({
  async put(files, signal) {
    for (const { path, text } of files) {
      signal.throwIfAborted()
      await replaceFile(join(folder, path), text)
    }
  },
})

async function replaceFile(path: string, text: string): Promise<void> {
  const folder = dirname(path)
  await mkdir(folder, { recursive: true, mode: 0o755 })
  const draft = join(folder, `.${newId()}.tmp`)
  try {
    const file = await open(draft, 'wx', 0o644)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(draft, path)
  } catch (error) {
    await unlink(draft).catch(() => {})
    throw error
  }
  const entries = await open(folder, 'r')
  try {
    await entries.sync()
  } finally {
    await entries.close()
  }
}
