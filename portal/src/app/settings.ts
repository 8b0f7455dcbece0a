import type { PortalSettings } from '#features/portal/contract/portal.ts'

/** The settings that the gateway wrote into the page. */
export const settings: PortalSettings = JSON.parse(document.getElementById('settings')?.textContent ?? '')
