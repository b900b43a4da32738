import { ChevronRight } from "lucide-react";

import { Field } from "../ui/field";
import { useGatewayWords } from "../words/gateways";
import { NO_PRICE, type PriceFault, type TypedPrice } from "./gateway";

interface Props {
  models: readonly string[];
  prices: Readonly<Record<string, TypedPrice>>;
  fault: PriceFault | null;
  isOpen: boolean;
  onChange: (prices: Readonly<Record<string, TypedPrice>>) => void;
}

/** What each model costs, for those whose price the server doesn't know or that cost something else here. */
export function ModelPrices({ models, prices, fault, isOpen, onChange }: Props) {
  const gatewayWords = useGatewayWords();
  const field = (model: string, name: keyof TypedPrice) => {
    const price = prices[model] ?? NO_PRICE;
    const isWrong = fault?.model === model && fault.field === name;
    return (
      <Field label={gatewayWords.priceOf[name]} fault={isWrong ? gatewayWords.priceFaults[fault.kind] : undefined}>
        <input
          value={price[name]}
          inputMode="decimal"
          autoComplete="off"
          maxLength={14}
          onChange={(event) => onChange({ ...prices, [model]: { ...price, [name]: event.target.value } })}
        />
      </Field>
    );
  };
  return (
    <details open={isOpen || undefined}>
      <summary>
        <ChevronRight aria-hidden className="fold" />
        <span>{gatewayWords.prices}</span>
      </summary>
      <p className="hint">{gatewayWords.pricesHint}</p>
      <div className="model-prices">
        {models.map((model) => (
          <div key={model} role="group" aria-label={model}>
            <span>{model}</span>
            {field(model, "input")}
            {field(model, "output")}
          </div>
        ))}
      </div>
    </details>
  );
}
