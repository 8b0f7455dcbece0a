import { accessSync, constants } from 'node:fs'
import process from 'node:process'
import type { TestProject } from 'vitest/node'
import { missingPart } from './missing-part.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** Where Chromium is; empty when it is not installed. */
    chromium: string
  }
}

const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/** Vitest's global set-up: looks for a browser, which each suite then starts for itself. */
export default function setup(project: TestProject): void {
  const named = process.env['GATEHOUSE_TEST_CHROMIUM']
  const candidates = named === undefined || named === '' ? places : [named]
  const found = candidates.find(isProgram)
  if (found === undefined) missingPart('Chromium', new Error(`none at ${candidates.join(', ')}`))
  project.provide('chromium', found ?? '')
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
