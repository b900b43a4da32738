/** Money: amounts are decimal strings, and sums are exact. */

import { type CostView } from "./schema.ts";

/** Amounts have at most this many decimals. */
const DECIMALS = 12;

/** The sum of two costs; unknown if one of them is, or if their currencies differ. */
export function addCosts(one: CostView | null | undefined, other: CostView | null | undefined): CostView | null {
  if (!one || !other || one.currency !== other.currency) return null;
  return { amount: amountText(units(one.amount) + units(other.amount)), currency: one.currency };
}

function units(amount: string): bigint {
  const [whole = "0", decimals = ""] = amount.split(".");
  return BigInt(whole + decimals.padEnd(DECIMALS, "0"));
}

function amountText(amount: bigint): string {
  const digits = amount.toString().padStart(DECIMALS + 1, "0");
  const decimals = digits.slice(-DECIMALS).replace(/0+$/, "").padEnd(2, "0");
  return `${digits.slice(0, -DECIMALS)}.${decimals}`;
}
