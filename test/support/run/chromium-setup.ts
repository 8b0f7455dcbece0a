import type { TestProject } from 'vitest/node'
import { chromiumPlaces, findChromium } from '#testing/browser/chromium-program.ts'
import { missingPart } from '#testing/run/missing-part.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The path of Chromium; empty if it is not installed. */
    chromium: string
  }
}

/** Vitest's global setup: looks for a browser, which each suite then starts for itself. */
export default function setup(project: TestProject): void {
  const found = findChromium()
  if (found === undefined) missingPart('Chromium', new Error(`none at ${chromiumPlaces().join(', ')}`))
  project.provide('chromium', found ?? '')
}
