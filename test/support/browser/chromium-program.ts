import { accessSync, constants } from 'node:fs'
import process from 'node:process'
import { type Browser, chromium } from 'playwright-core'

/** The headless shell first: the same engine without the parts of a desktop browser, which take as much CPU time again. */
const places = [
  '/usr/lib/chromium/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
]

/** The possible paths of Chromium: from the environment, or those of distributions. */
export function chromiumPlaces(): readonly string[] {
  const named = process.env['GATEHOUSE_TEST_CHROMIUM']
  return named === undefined || named === '' ? places : [named]
}

/** Undefined if it is not installed. */
export const findChromium = (): string | undefined => chromiumPlaces().find(isProgram)

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Without a window. The caller closes it. */
export function launchChromium(executablePath: string): Promise<Browser> {
  // Chromium's sandbox does not run as root, nor its shared memory in a container.
  const asRoot = process.getuid?.() === 0 ? ['--no-sandbox'] : []
  return chromium.launch({ executablePath, args: [...asRoot, '--disable-dev-shm-usage'], timeout: 60_000 })
}
