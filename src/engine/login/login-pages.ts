import type { GatewayResponse } from '#sdk/filter/http.ts'
import { html, notice, page } from '#sdk/filter/page.ts'

export const signedOutPath = '/auth/signed-out'

/** No link where it is not known that one would lead anywhere. */
const link = (address: string | undefined, text: string) =>
  address === undefined ? '' : html`<p><a href="${address}">${text}</a></p>`

export const signedOut = (back: string | undefined): GatewayResponse =>
  page(
    200,
    'You are signed out',
    html`<p>Close the browser window if others use this computer.</p>${link(back, 'Sign in again')}`,
  )

export const unknownLogin = (back: string | undefined): GatewayResponse =>
  page(
    400,
    'This login has ended',
    html`<p>It took too long, is already complete, or was started in another browser. Start again from the page you wanted to see. Your browser must accept cookies.</p>${link(back, 'Start again')}`,
  )

export const takenStep = (address: string): GatewayResponse =>
  page(409, 'You already completed this step', html`<p><a href="${address}">Continue the login</a></p>`)

export const foreignPost = (): GatewayResponse => notice(403, 'Not allowed', 'Log in at the page that this site shows.')

export const refusedLogin = (status: 401 | 403, again: string): GatewayResponse =>
  page(
    status,
    'You could not be signed in',
    html`<p role="alert">${status === 403 ? 'You signed in, but you do not have access.' : 'The login was not accepted.'}</p>
<p><a href="${again}">Try again</a></p>`,
    { narrow: true },
  )

/** Instead of a redirect, where the browser would not send the cookie along after one that another site began. */
export const goOn = (address: string): GatewayResponse =>
  page(200, "You're signed in", html`<p><a href="${address}">Continue</a></p>`, { refresh: address, narrow: true })
