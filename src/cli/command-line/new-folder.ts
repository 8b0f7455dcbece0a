import { existsSync, lstatSync, readdirSync, statSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'

/** Throws an Error if the folder exists and is not empty. */
export function checkNewFolder(folder: string): void {
  if (lstatSync(folder, { throwIfNoEntry: false }) === undefined) return
  if (!existsSync(folder)) throw new Error(`${folder} is a link to a folder that does not exist. Choose a new name.`)
  if (!statSync(folder).isDirectory())
    throw new Error(`${folder} is a file, so nothing was written. Choose a new name.`)
  if (readdirSync(folder).length > 0) {
    throw new Error(`${folder} is not empty, so nothing was written. Choose a new folder.`)
  }
}

/**
 * Everything is written to a folder beside it and then renamed, so that the folder is complete or absent. An existing one
 * may be a mount, and that of the operator's shell, so it stays, and the files are moved into it.
 */
export async function writeNewFolder(folder: string, write: (made: string) => Promise<void>): Promise<void> {
  const target = resolve(folder)
  const exists = existsSync(target)
  await mkdir(dirname(target), { recursive: true })
  const made = await mkdtemp(exists ? join(target, '.new-') : join(dirname(target), `.${basename(target)}-`))
  try {
    await write(made)
    if (exists) await moveInto(target, made)
    else {
      await chmod(made, 0o755)
      await rename(made, target)
    }
  } catch (error) {
    await rm(made, { recursive: true, force: true })
    throw error
  }
}

async function moveInto(target: string, made: string): Promise<void> {
  const moved: string[] = []
  try {
    const names = await readdir(made)
    const isFilled = (name: string): boolean =>
      statSync(join(made, name)).isDirectory() && readdirSync(join(made, name)).length > 0
    // Filled folders first: what another command has written at the same time is not replaced by a folder.
    for (const name of names.toSorted((a, b) => Number(isFilled(b)) - Number(isFilled(a)))) {
      await rename(join(made, name), join(target, name))
      moved.push(name)
    }
  } catch (error) {
    for (const name of moved) await rm(join(target, name), { recursive: true, force: true })
    throw error
  }
  await rm(made, { recursive: true })
}
