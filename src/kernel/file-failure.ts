import process from 'node:process'

/** What to do about an error of the operating system, by its code. */
const advice: Readonly<Record<string, (path: string) => string>> = {
  EACCES: (path) =>
    `permission denied. Give ${path} to the user${ownId()} that runs this program, or run it as the owner`,
  EPERM: (path) => `operation not permitted. Give ${path} to the user${ownId()} that runs this program`,
  EROFS: () => 'the file system is read-only. Mount it writable, or choose another place',
  ENOSPC: () => 'the disk is full. Free some space, then start again',
  EDQUOT: () => 'the disk quota is used up. Free some space, then start again',
  ENOTDIR: () => 'a part of the path is not a folder. Choose another place',
  EMFILE: () => 'too many files are open. Raise the limit of open files (ulimit -n)',
}

const ownId = (): string => (process.getuid === undefined ? '' : ` ${process.getuid()}`)

/**
 * An error of the operating system about a file, for operators: the file, what is wrong with it and what to do. Undefined
 * for any other error.
 */
export function fileFailure(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error)) return undefined
  const { code, path, syscall } = thrown as NodeJS.ErrnoException
  // Node.js also says so where the file system is read-only.
  if (code === 'ENOENT' && syscall === 'mkdir')
    return `${path} cannot be created: its file system is read-only, or it is gone. Choose another place`
  if (code === undefined || path === undefined || !Object.hasOwn(advice, code)) return undefined
  return `${path} cannot be used: ${advice[code]?.(path)}`
}
